"""Dask, Ray, Spark and workers of a queue through joblib give the bits of one process; partitions
of frames those of the whole.
"""

import os
import shutil
import sys

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from known_problems import hidden_mode_problem, make_rbm_problem
from marks import large
from sklearn.feature_extraction.text import HashingVectorizer

from sklpf import AIS, BernoulliRBM, LatentDirichletAllocation, LeftToRight
from sklpf.testing import check_parallel

RBM = BernoulliRBM.from_parameters(np.eye(3, 4), np.zeros(4), np.zeros(3))  # known to all workers
LOCAL = {"host": "127.0.0.1", "dashboard_address": None}


@pytest.fixture(scope="module")
def dask_cluster():
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, **LOCAL) as cluster, Client(cluster):
        yield


@pytest.fixture(scope="module")
def ray_cluster():
    ray = pytest.importorskip("ray", reason="ray is not installed (dependency group clusters)")
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
    return np.concatenate([run.forward, run.reverse.ravel()])


@pytest.mark.filterwarnings("ignore")  # the back ends' own, and that 20 chains are few
@pytest.mark.parametrize(
    "make", [large(lambda: make_rbm_problem("digits")), lambda: hidden_mode_problem(6, 0.8)]
)
def test_a_cluster_gives_the_bits_of_one_process(backend, make, monkeypatch):
    # segments of 500 sweeps
    monkeypatch.setattr("sklpf.models.rbm._path.RBMPath._work_per_segment", 0)
    path = make().path
    serial = fit(path)
    with parallel_config(backend=backend):
        np.testing.assert_array_equal(fit(path, n_jobs=2), serial)


# A queue that starts every job at once, on this machine.
SBATCH = """#!/bin/sh
cp "$1" "$0.$$"
setsid sh "$0.$$" > "$0.$$.log" 2>&1 &
echo "Submitted batch job $!"
"""


@pytest.mark.large
@pytest.mark.filterwarnings("ignore")  # the back end's own
def test_workers_of_a_queue(tmp_path, monkeypatch):
    jobqueue = pytest.importorskip("dask_jobqueue", reason="needs the dependency group clusters")
    from distributed import Client

    commands = {"sbatch": SBATCH, "scancel": '#!/bin/sh\nkill -- "-$1"\n'}
    for name, script in commands.items():
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    options = {"cores": 1, "processes": 1, "memory": "2GB", "walltime": "00:10:00"}
    with jobqueue.SLURMCluster(**options, scheduler_options=LOCAL) as cluster:
        cluster.scale(jobs=2)
        with Client(cluster) as client:
            client.wait_for_workers(2, timeout=60)
            with parallel_config(backend="dask"):
                check_parallel(AIS(20, 250, checks=False, n_jobs=2), RBM)


# ---- partitions
@pytest.fixture(scope="module")
def spark():
    sql = pytest.importorskip("pyspark.sql", reason="needs the dependency group clusters")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    builder = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    for name in ("spark.driver.host", "spark.driver.bindAddress"):
        builder = builder.config(name, "127.0.0.1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        session = builder.getOrCreate()
        yield session
        session.stop()


def scored_texts():
    """Texts in a frame, and what scores such a frame."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(["rain", "wind", "sun", "cat", "dog"], 8)) for _ in range(30)]
    vectorizer = HashingVectorizer(n_features=16, alternate_sign=False, norm=None)
    options = {"partition_estimator": LeftToRight(20), "random_state": 0}
    model = LatentDirichletAllocation(2, **options).fit(vectorizer.transform(texts))

    def score(frame):
        scores = model.score_samples(vectorizer.transform(frame["text"]))
        return pd.Series(scores, index=frame.index)

    return pd.DataFrame({"text": texts}), score


@pytest.mark.large
@pytest.mark.filterwarnings("ignore")  # Spark's own, of a newer pandas
def test_partitions_of_a_spark_frame_of_texts_have_the_bits_of_one_frame(spark):
    frame, score = scored_texts()

    def scores(frames):
        for part in frames:
            yield part[["number"]].assign(score=score(part))

    parts = spark.createDataFrame(frame.assign(number=frame.index)).repartition(4)
    found = parts.mapInPandas(scores, "number long, score double").toPandas()
    assert parts.rdd.getNumPartitions() == 4
    np.testing.assert_array_equal(found.sort_values("number")["score"], score(frame))


@pytest.mark.large
@pytest.mark.filterwarnings("ignore")  # the back end's own
def test_spark_as_back_end(spark):
    pytest.importorskip("joblibspark", reason="needs the dependency group clusters")
    from joblibspark import register_spark

    register_spark()
    with parallel_config(backend="spark", n_jobs=2):
        check_parallel(AIS(20, 250, checks=False), RBM)
