"""The callout policy: the decision whether an event of a mission is spoken, and its text.

    decision = decide(event, Context(tier=Tier.AWARE, session_state=SessionState.ACTIVE), History(), time_ms=0)
    decision.payload.document     # `dottie.utility.v1`: the text, and the voice or the reason why there is none
    decision.history              # for the next decision

No trio, no clock, no input or output.
"""
