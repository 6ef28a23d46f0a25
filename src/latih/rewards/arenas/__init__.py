"""The verifiers under attack, one file each; every module in this folder is imported, and registers itself."""
