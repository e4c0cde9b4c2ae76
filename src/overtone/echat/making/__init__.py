"""`overtone build echat`: exchanges composed from written texts, spoken, heard by the gates and written."""
