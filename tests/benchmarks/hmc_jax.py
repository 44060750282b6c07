"""HMC steps of the image models in JAX: a peer of hmc_speed.py, which starts it in an environment
that has JAX.

Reads lines "jax" and "blackjax" and answers each with the processor seconds of one call, after a
first answer when both are compiled. One step is one leapfrog step with acceptance; both scan over
all steps in one compiled call.
"""

import json
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)


def densities(kind, arrays):
    """Energies and forces of points (n, d), u = M x: log f_0 with its gradient, and log f_1 with
    its own, by hand.
    """
    A = {name: jnp.array(value) for name, value in arrays.items()}

    def gaussian(x):
        return -0.5 * jnp.sum(x * x, -1), -x

    def heavy(x):
        square, d = jnp.sum(x * x, -1), x.shape[-1]
        return -0.5 * (A["df"] + d) * jnp.log1p(square / A["df"]), -x * (
            (A["df"] + d) / (A["df"] + square)
        )[..., None]

    def laplace(x):
        u = x @ A["filters"].T
        return -jnp.sum(jnp.abs(u), -1), -jnp.sign(u) @ A["filters"]

    def student_t(x):
        u = x @ A["filters"].T
        s = 1 + u * u
        return -jnp.sum(A["exponents"] * jnp.log(s), -1), -(2 * A["exponents"] * u / s) @ A[
            "filters"
        ]

    def linear(x):
        a = A["center"] + x @ A["root"]
        log_base, slope = gaussian(x)
        return log_base + jnp.sum(a * a / 4 - jnp.abs(a), -1), slope + (a / 2 - jnp.sign(a)) @ A[
            "root"
        ]

    def mcrbm(x):
        root = 1 / jnp.sqrt(jnp.sum(x * x, -1, keepdims=True) / x.shape[-1] + 0.5)
        u = (x @ A["factors"].T) * root
        covariance = A["intercept_covariance"] - 0.5 * (u * u) @ A["pooling"]
        mean = A["intercept_mean"] + x @ A["filters"].T
        log_base, slope = gaussian(x)
        forces = u * (jax.nn.sigmoid(covariance) @ A["pooling"].T)
        along = jnp.sum(forces * u, -1, keepdims=True) * root**2 / x.shape[-1]
        slope = (
            slope - (forces * root) @ A["factors"] + along * x + jax.nn.sigmoid(mean) @ A["filters"]
        )
        return log_base + jnp.sum(jax.nn.softplus(covariance), -1) + jnp.sum(
            jax.nn.softplus(mean), -1
        ), slope

    base = heavy if kind == "student-t" else gaussian
    target = {"laplace": laplace, "student-t": student_t, "linear": linear, "mcrbm": mcrbm}[kind]

    def both(x):
        (log_base, base_slope), (log_target, slope) = base(x), target(x)
        return log_base, log_target - log_base, base_slope, slope - base_slope

    def log_density(x, beta):
        return (1 - beta) * base(x)[0] + beta * target(x)[0]

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
        kept = tuple(
            jnp.where(rows if a.ndim == 2 else accept, a, b)
            for a, b in zip(new, (log_base, gain, g0, g1))
        )
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
    with np.load(case["arrays"]) as arrays:
        both, log_density = densities(case["kind"], dict(arrays))
    d = case["d"]
    x = np.random.default_rng(0).normal(size=(case["n"], d))
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
