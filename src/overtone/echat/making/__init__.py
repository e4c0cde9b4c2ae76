"""`overtone build echat`: compose exchanges from written texts, speak and check their audio, and write the set."""
