"""From records to what is read: rows, results pages, charts and summary.csv."""
