"""How a reply to a multiple-choice question is read as one of its options."""
