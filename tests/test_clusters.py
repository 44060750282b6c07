"""Dask and Ray through joblib give the bits of one process; partitions of a Dask frame those of the
whole.
"""

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from known_problems import hidden_mode_problem, make_rbm_problem
from sklearn.feature_extraction.text import HashingVectorizer

from sklpf import AIS, LatentDirichletAllocation, LeftToRight
from sklpf.datasets import make_bars_corpus


@pytest.fixture(scope="module")
def dask_cluster():
    from distributed import Client, LocalCluster

    options = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "host": "127.0.0.1",
        "dashboard_address": None,
    }
    with LocalCluster(**options) as cluster, Client(cluster):
        yield


@pytest.fixture(scope="module")
def ray_cluster():
    ray = pytest.importorskip("ray", reason="ray is not installed (dependency group ray)")
    from ray.util.joblib import register_ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    register_ray()
    yield
    ray.shutdown()


@pytest.fixture(params=["dask", "ray"])
def backend(request):
    request.getfixturevalue(f"{request.param}_cluster")
    return request.param


def fit(path, n_jobs=None):
    """Log weights of chains that go up, and of those that come back down."""
    run = AIS(20, 250, random_state=3, n_jobs=n_jobs).fit(path).run_
    return np.concatenate([run.up, run.down.ravel()])


@pytest.mark.filterwarnings("ignore")  # the back ends' own, and that 20 chains are few
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: make_rbm_problem("digits"), marks=pytest.mark.large),
        lambda: hidden_mode_problem(6, 0.8),
    ],
)
def test_a_cluster_gives_the_bits_of_one_process(backend, make, monkeypatch):
    monkeypatch.setattr(
        "sklpf.models.rbm._path.RBMPath._work_per_segment", 0
    )  # segments of 500 sweeps
    path = make().path
    serial = fit(path)
    with parallel_config(backend=backend):
        np.testing.assert_array_equal(fit(path, n_jobs=2), serial)


@pytest.mark.filterwarnings("ignore")
def test_documents_on_a_cluster(backend):
    X, topics, _ = make_bars_corpus(12, size=3, n_tokens=20, background=0.1, random_state=0)
    model = LatentDirichletAllocation.from_topics(
        topics, 0.3, partition_estimator=LeftToRight(20), random_state=0, n_jobs=2
    )
    serial = model.set_params(n_jobs=1).score_samples(X)
    with parallel_config(backend=backend):
        np.testing.assert_array_equal(model.set_params(n_jobs=2).score_samples(X), serial)


# ---- partitions


@pytest.mark.large
def test_partitions_of_a_dask_frame_of_texts_have_the_bits_of_one_frame():
    import dask.dataframe as dd

    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(["rain", "wind", "sun", "cat", "dog"], 8)) for _ in range(30)]
    vectorizer = HashingVectorizer(n_features=16, alternate_sign=False, norm=None)
    options = {"partition_estimator": LeftToRight(20), "random_state": 0}
    model = LatentDirichletAllocation(2, **options).fit(vectorizer.transform(texts))

    def score(frame):
        return pd.Series(
            model.score_samples(vectorizer.transform(frame["text"])), index=frame.index
        )

    frame = pd.DataFrame({"text": texts})
    lazy = dd.from_pandas(frame, npartitions=4).map_partitions(score, meta=(None, float))
    np.testing.assert_array_equal(lazy.compute(scheduler="synchronous"), score(frame))
