"""Questions that are asked aside."""

from __future__ import annotations

import threading

import pytest

from envcheck.exit_codes import UsageError
from envcheck.install.survey import background


def test_an_answer_comes_from_a_thread_that_no_end_waits_for() -> None:
    told = background(threading.current_thread).result()
    assert told is not threading.current_thread() and told.daemon


def test_an_error_is_raised_where_the_answer_is_wanted() -> None:
    def ask() -> None:
        raise UsageError("no such index")

    with pytest.raises(UsageError, match="no such index"):
        background(ask).result()
