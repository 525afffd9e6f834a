"""The command line `sluice-client`. The Node client's package has the same commands, options, texts and exit codes."""
