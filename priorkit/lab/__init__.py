"""Reinforcement learning without a GPU: graded problems and nano language models."""
