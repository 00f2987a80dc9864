"""The gate: every call passes it once, and it says allow, ask or deny, with every reason it had."""
