"""The same as a test: pytest --reprod"""
import pytest

import train


@pytest.mark.reprod(runs=3, control={"TRAIN_DETERMINISTIC": "0"})
def test_training_is_reproducible(reprod):
    reprod.finish(*train.train(reprod))
