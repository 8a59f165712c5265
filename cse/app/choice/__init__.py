"""The tab of blind votes: which of two models suits the chosen corpus better."""
