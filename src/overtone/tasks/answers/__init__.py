"""Read a reply to a multiple-choice question as one of the question's options."""
