"""The engine of I3M: classes that follow their table while records come, go and change. Knows no store and no release."""
