"""The jobs that a visitor starts and waits for: live runs, races, landscapes, examinations."""
