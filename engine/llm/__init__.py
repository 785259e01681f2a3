"""Language models: the one chat client, prompt files, the reply cache and the ledger of what was paid."""
