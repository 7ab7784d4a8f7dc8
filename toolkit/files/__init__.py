"""Files of the workspace, changed atomically: whole files, locks between processes, transactions that survive a crash."""
