"""Which of two models suits a text better: questions, blind votes, verdict."""
