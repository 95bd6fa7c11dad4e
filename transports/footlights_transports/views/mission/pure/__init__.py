"""Mission events told as text and, if everything allows it, as voice. Pure and deterministic.

    decision = decide(event, Context(tier=Tier.AWARE, session_state=SessionState.ACTIVE), History(), time_ms=0)
    decision.payload.document     # `dottie.utility.v1`: the text, the voice or why there is none
    decision.history              # for the next decision

`MATRIX` says what may be spoken, `SuppressionReason` why something is not. The text survives whatever is decided.
"""
