"""Spells terms so that their arrays are few and small, before they are lowered."""
