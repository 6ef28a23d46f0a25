"""Waits for one's turn, as a deadline's owner counts them."""

import threading
import time

from latih.core.turns import Waits, counted, waiting


def test_only_waits_of_the_thread_that_does_the_call_count():
    waits = Waits()
    counted(waits)
    try:
        time.sleep(0.1)
        assert waits.seconds == 0
        with waiting():
            time.sleep(0.1)
            assert waits.seconds >= 0.1  # one that is not over counts as well
        over = waits.seconds
        time.sleep(0.05)
        assert waits.seconds == over
        elsewhere = threading.Thread(target=lambda: waiting().__enter__())
        elsewhere.start()
        elsewhere.join()
        assert waits.seconds == over
        with waiting():
            time.sleep(0.1)
        assert waits.seconds >= over + 0.1
    finally:
        counted(None)
    with waiting():  # nobody asks
        time.sleep(0.01)
    assert over < waits.seconds < 30
