"""The app: `results`, the `places` of the page that show them, `models`, `state` and `forms`; the `server`."""
