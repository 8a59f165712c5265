"""The app: `sections` of the page, their `models`, `drawing` and `forms`; the `api` and the `server`."""
