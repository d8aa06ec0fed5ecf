"""Which of equal forms is written: common factors, named values."""
