"""HMC steps of products of experts in JAX: a peer of hmc_speed.py, which starts it in an environment that has JAX.

Reads lines "jax" and "blackjax" and answers each with the processor seconds of one call, after a first answer when
both are compiled. One step is one leapfrog step with acceptance; both scan over all steps in one compiled call.
"""

import json
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)


def densities(kind, W, strengths, df):
    """log f_0, log f_1 - log f_0 of points (n, d), and both with their gradients by hand."""
    d = W.shape[1]

    def base(x):
        if kind == "laplace":
            return -0.5 * jnp.sum(x * x, -1), -x
        square = jnp.sum(x * x, -1)
        return -0.5 * (df + d) * jnp.log1p(square / df), -x * ((df + d) / (df + square))[..., None]

    def both(x):
        u = x @ W.T
        if kind == "laplace":
            target, slope = -jnp.sum(jnp.abs(u), -1), -jnp.sign(u) @ W
        else:
            s = 1 + u * u
            target, slope = -jnp.sum(strengths * jnp.log(s), -1), -(2 * strengths * u / s) @ W
        log_base, base_slope = base(x)
        return log_base, target - log_base, base_slope, slope - base_slope

    def log_density(x, beta):
        u = W @ x
        target = -jnp.sum(jnp.abs(u)) if kind == "laplace" else -jnp.sum(strengths * jnp.log1p(u * u))
        return (1 - beta) * base(x)[0] + beta * target

    return both, log_density


def ours(both, step, half_life):
    """The move of sklpf: the gradients of the point are kept, and the velocity too."""
    share = 1 - 2.0 ** (-step / half_life)

    def move(carry, beta):
        key, x, v, (log_base, gain, g0, g1), weight = carry
        key, key_normal, key_uniform = jax.random.split(key, 3)
        weight = weight + (beta[1] - beta[0]) * gain
        pace = v + step / 2 * (g0 + beta[1] * g1)
        end = x + step * pace
        new = both(end)
        pace = pace + step / 2 * (new[2] + beta[1] * new[3])
        log_accept = new[0] + beta[1] * new[1] - log_base - beta[1] * gain
        log_accept += 0.5 * (jnp.sum(v * v, 1) - jnp.sum(pace * pace, 1))
        accept = jnp.log(jax.random.uniform(key_uniform, log_accept.shape)) < log_accept
        rows = accept[:, None]
        x, v = jnp.where(rows, end, x), jnp.where(rows, -pace, v)
        kept = tuple(jnp.where(rows if a.ndim == 2 else accept, a, b) for a, b in zip(new, (log_base, gain, g0, g1)))
        v = -jnp.sqrt(1 - share) * v + jnp.sqrt(share) * jax.random.normal(key_normal, v.shape)
        return (key, x, v, kept, weight), None

    @jax.jit
    def run(key, x, betas):
        v = jax.random.normal(key, x.shape)
        carry = key, x, v, both(x), jnp.zeros(len(x))
        return jax.lax.scan(move, carry, jnp.stack([betas[:-1], betas[1:]], 1))[0]

    return run


def blackjax_steps(log_density, step, d):
    import blackjax

    def move(carry, beta):
        key, x = carry
        key, used = jax.random.split(key)
        hmc = blackjax.hmc(lambda x: log_density(x, beta), step, jnp.ones(d), 1)
        state = jax.vmap(hmc.init)(x)
        state, _ = jax.vmap(hmc.step)(jax.random.split(used, len(x)), state)
        return (key, state.position), None

    return jax.jit(lambda key, x, betas: jax.lax.scan(move, (key, x), betas[1:])[0])


def main():
    case = json.loads(sys.argv[1])
    rng = np.random.default_rng(0)
    d, W = case["d"], jnp.array(rng.normal(size=(case["K"], case["d"])) / case["d"] ** 0.5)
    x = rng.normal(size=(case["n"], d))
    both, log_density = densities(case["kind"], W, jnp.full(case["K"], case["strength"]), case["df"])
    functions = {
        "jax": ours(both, case["step"], 0.5),
        "blackjax": blackjax_steps(log_density, case["step"], d),
    }
    arguments = jax.random.key(0), jnp.array(x), jnp.linspace(0, 1, case["levels"])
    for function in functions.values():
        jax.block_until_ready(function(*arguments))
    print("ready", flush=True)
    for line in sys.stdin:
        began = time.process_time()
        jax.block_until_ready(functions[line.strip()](*arguments))
        print(time.process_time() - began, flush=True)


if __name__ == "__main__":
    main()
