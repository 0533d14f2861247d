"""What every room needs: paths, settings, errors, locks, processes, progress, facts about the machine."""
