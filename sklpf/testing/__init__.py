"""What tests of sklpf, and of your own paths and estimators, are built from."""

from sklpf.testing._data import find_shared_data, shared_data

__all__ = ["find_shared_data", "shared_data"]
