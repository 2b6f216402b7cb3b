"""The installers. Imported as `envcheck.install`, never as `install`."""
