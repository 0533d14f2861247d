"""From records to pages: figures, tables and sentences; chapters run with papermill, the book rendered."""
