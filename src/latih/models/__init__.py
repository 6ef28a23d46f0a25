"""Models: tokenizer, chat template, decoder, adapters, loading."""
