"""The loggers, one file each; every module in this folder is imported, and registers itself."""

from latih.core.plugins import import_all

import_all(__name__)
