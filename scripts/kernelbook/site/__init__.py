"""The site: Markdown extensions that bind an article to sources and records."""
