"""What holds for all tests."""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As where a script runs the tests in the background; they and the processes that they start are to hear of it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
