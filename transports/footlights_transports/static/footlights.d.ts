/** Types of footlights.js. Fields of events and params are named as on the wire; everything else as in JavaScript. */

/** In a cursor: every event of this turn was taken, including its commit_final. */
export declare const ALL_SEEN: 1_000_000_001;

/** Position in each turn: the last seq that was taken, by turn id; -1 if no event was taken. */
export type Cursor = Readonly<Record<string, number>>;

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** Error codes of the server. */
export type WireCode =
    | "invalid_command"
    | "session_in_use"
    | "unknown_session"
    | "unknown_turn"
    | "invalid_world"
    | "unknown_world"
    | "session_closed"
    | "busy"
    | "too_large"
    | "commit_pending"
    | "rate_limited"
    | "unauthorized"
    | "unsupported_version"
    | "internal";

/** Base class of all errors. */
export declare class FootlightsError extends Error {
    readonly code: WireCode | "connection_lost" | "law_broken";
    constructor(code: string, message: string);
}

/** The connection was lost, or could not be opened. A command without a reply may or may not have been executed. */
export declare class ConnectionLost extends FootlightsError {
    readonly code: "connection_lost";
    constructor(message: string);
}

/** The server sent an event that breaks a law. */
export declare class LawBroken extends FootlightsError {
    readonly code: "law_broken";
    /** The name of the law. */
    readonly law: string;
    readonly turnId: string;
    readonly seq: number;
    constructor(law: string, event: { readonly turn_id: string; readonly seq: number });
}

// -- events

/** Sequence numbers that will not be sent, both ends included. */
export interface SeqRange {
    readonly start_seq: number;
    readonly end_seq: number;
}

/** Fields that every payload may have. */
export interface Payload {
    /** An extension's own data. */
    readonly ext?: { readonly namespace: string; readonly data: Json };
    /** Events of the turn before this one that this client will not get. The text of joined deltas is not missing. */
    readonly dropped_seq_ranges?: readonly SeqRange[];
}

export interface TurnAccepted extends Payload {
    readonly turns_ahead: number;
}

/** What went wrong: a stable code for programs, and a sentence for people. */
export interface ErrorInfo {
    readonly code: string;
    readonly message: string;
}

export interface ModelSelected extends Payload {
    readonly model_id: string;
    readonly reason: string;
    /** What was wrong with the model before, if the reason is `fallback`. */
    readonly error?: ErrorInfo;
}

export interface ModelLoading extends Payload {
    readonly model_id: string;
    readonly cold_start: boolean;
    readonly progress?: number;
}

export interface ModelReady extends Payload {
    readonly model_id: string;
    readonly warm_state: "hot" | "warm" | "cold";
    readonly load_ms: number;
}

export interface TokenDelta extends Payload {
    readonly delta: string;
    /** Where `delta` starts in the turn's text. In code points, and not in the UTF-16 units of a string's `length`. */
    readonly offset: number;
}

export interface ToolCallStarted extends Payload {
    readonly tool_call_id: string;
    readonly tool_name: string;
}

export interface ToolCallResult extends Payload {
    readonly tool_call_id: string;
    readonly tool_name: string;
    readonly canceled: boolean;
    readonly side_effects_may_have_occurred?: boolean;
    readonly summary?: string;
    readonly error?: ErrorInfo;
    /** What the call asks for is not done before somebody approves it. */
    readonly awaits_approval?: boolean;
}

export type InterruptReason =
    | "canceled"
    | "barge_in"
    | "model_error"
    | "tool_error"
    | "workload_error"
    | "timeout"
    | "stalled"
    | "session_closed"
    | "shutdown"
    | "runtime_restart";

export interface TurnInterrupted extends Payload {
    readonly reason: InterruptReason;
    readonly detail?: string;
    readonly heard?: { readonly seq: number; readonly text: string };
    /** Why the turn failed, if it did. The sentence quotes neither a player nor a model. */
    readonly error?: ErrorInfo;
    /** The server no longer has the text of the turn: what was not received is gone. */
    readonly text_forgotten?: boolean;
}

export interface TurnFinal extends Payload {
    /** The whole text of the turn, unless `text_forgotten` is set. */
    readonly text: string;
    /** The server no longer has the text of the turn, and `text` is empty: use the text of the deltas received. */
    readonly text_forgotten?: boolean;
    readonly output_tokens?: number;
    /** The text was cut at its limit of tokens, and more would have followed. */
    readonly cut?: boolean;
    readonly authoritative: false;
}

export type CommitOutcome = "ok" | "fail_closed";

export interface CommitFinal extends Payload {
    readonly commit_digest: string;
    readonly commit_outcome: CommitOutcome;
    readonly issues: readonly { readonly code: string; readonly message: string; readonly ref?: string }[];
    readonly artifact_refs: readonly string[];
    readonly commit_id?: string;
    readonly authoritative: true;
}

export interface Payloads {
    turn_accepted: TurnAccepted;
    model_selected: ModelSelected;
    model_loading: ModelLoading;
    model_ready: ModelReady;
    token_delta: TokenDelta;
    tool_call_started: ToolCallStarted;
    tool_call_result: ToolCallResult;
    turn_interrupted: TurnInterrupted;
    turn_final: TurnFinal;
    commit_final: CommitFinal;
}

/** One event, as the server sent it. `event_type` says which payload it has. */
export type StreamEvent = {
    [Type in keyof Payloads]: {
        readonly schema_v: string;
        readonly session_id: string;
        readonly turn_id: string;
        readonly seq: number;
        readonly mono_ts_ms: number;
        readonly wall_ts?: number;
        readonly event_type: Type;
        readonly payload: Payloads[Type];
    };
}[keyof Payloads];

// -- the public classes

export interface ConnectOptions {
    /** Sent as the subprotocol `bearer.TOKEN`, because browsers cannot set headers. */
    token?: string | null;
    /** Ask for several events in one frame. */
    batch?: boolean;
    /** The class to connect with; the global one by default. */
    WebSocket?: new (url: string, protocols: string[]) => WebSocketLike;
    /** How many events may wait for a slow consumer before its stream is detached, to be resumed later. */
    maxWaiting?: number;
    /** Attempts in a row to reconnect, and to subscribe to a session that the server refuses for the moment. */
    attempts?: number;
    /** How many milliseconds to wait before the attempt, counted from 0. */
    backoff?: (attempt: number) => number;
    /**
     * Milliseconds of silence, 30,000 by default, after which the client sends a ping. If the server stays silent for
     * as long again, the connection is closed. It is also the timeout for opening a connection.
     */
    silence?: number;
    /** The timers to use; the global ones by default. */
    timers?: TimersLike;
}

/** The timer functions that the client uses. */
export interface TimersLike {
    setTimeout(wake: () => void, milliseconds: number): any;
    clearTimeout(timer: any): void;
}

/** The part of WebSocket that the client uses. */
export interface WebSocketLike {
    binaryType: string;
    readonly protocol: string;
    readonly readyState: number;
    onopen: ((event: any) => void) | null;
    onmessage: ((event: any) => void) | null;
    onerror: ((event: any) => void) | null;
    onclose: ((event: any) => void) | null;
    send(data: string): void;
    close(): void;
}

export interface SessionParams {
    /** A chosen name, with which the session can be resumed after a restart. */
    session_id?: string;
    /** Consent: whether text may be sent to remote models. */
    remote_models?: boolean;
    /** What is known about the player. Only a game server may say it; a player is refused with `unauthorized`. */
    about?: { [name: string]: unknown };
}

/** How a model chooses its tokens, and when it stops. What is not set here is set by the persona or the model. */
export interface Sampling {
    temperature?: number;
    top_p?: number;
    min_p?: number;
    repeat_penalty?: number;
    frequency_penalty?: number;
    /** At most 4 texts at which a round ends. */
    stop?: readonly string[];
    seed?: number;
    /** Maximum output tokens of the turn, within the budget of its tier. */
    max_tokens?: number;
}

export interface TurnParams {
    busy?: "queue" | "interrupt" | "reject" | "concurrent";
    mode?: "chat" | "execution";
    model?: string;
    persona?: string;
    tier?: "dormant" | "whisper" | "dialogue" | "deep";
    sampling?: Sampling;
    /** Answers to acts that wait for approval: by id, whether to do the act. */
    approvals?: Record<string, boolean>;
    workload?: string;
}

export interface Commit {
    readonly commit_id: string | null;
    readonly commit_digest: string;
    readonly commit_outcome: CommitOutcome;
}

/** Connect to a server. Rejects if that fails; browsers do not report why. */
export declare function connect(url: string | URL, options?: ConnectOptions): Promise<Client>;

/** Client of one server: keeps it connected and passes each event to its stream. */
export interface Client {
    /** Open a session. */
    start(params?: SessionParams): Promise<Session>;
    /** An existing session. */
    session(sessionId: string, params?: Pick<SessionParams, "remote_models">): Session;
    /**
     * Follow what changes in a part of the world. `under` is a JSON pointer. Without `after`, the `cursor` of an earlier
     * feed, it begins now.
     */
    followCommits(options?: { after?: string | null; under?: string }): Promise<CommitFeed>;
    /** Close the connection. Streams end; sessions and their turns continue on the server. */
    close(): Promise<void>;
}

/** One session on the server. Every call rejects with a `FootlightsError` if the server refuses it. */
/** A note with its words. With `approval_id` it waits for that approval. */
export interface Note {
    readonly note_id: string;
    readonly by: string;
    readonly about: "player" | "world";
    readonly turn_id: string;
    readonly words: string;
    readonly approval_id?: string;
}

export interface Notebook {
    readonly agreed: boolean;
    readonly notes: readonly Note[];
}

export interface Session {
    readonly sessionId: string;
    /** Subscribe: unfinished turns, then live events. With the cursor of an earlier stream, everything after it. */
    subscribe(options?: { after?: Cursor | null; terminalSeen?: readonly string[] }): Promise<Stream>;
    /**
     * Begin a turn; resolves to its id. After a lost reply it is sent again with the same id, which begins one turn only.
     * `requestId` is random unless given: 1 to 128 printable characters.
     */
    beginTurn(input: string, params?: TurnParams, options?: { requestId?: string }): Promise<string>;
    /** Cancel a turn, or every open turn; resolves to the ids of the canceled turns. */
    cancel(turnId?: string | null): Promise<string[]>;
    /** Wait for the commit of the turn; resolves to its outcome. */
    finalize(turnId: string): Promise<Commit>;
    /** What is remembered of the player. */
    notes(act?: "list" | "erase" | "agree" | "withdraw"): Promise<Notebook>;

    /** Report the last event that the player has heard. */
    heard(turnId: string, seq: number): Promise<void>;
    /** Cancel open turns and close the session. Its streams end after the last commit. */
    close(): Promise<void>;
}

/** One operation of a JSON Patch. */
export interface Change {
    readonly op: "add" | "remove" | "replace" | "move" | "copy";
    readonly path: string;
    readonly value?: Json;
    readonly from?: string;
}

/** A commit, as far as the user may know it. */
export interface ToldCommit {
    /** For `followCommits({ after })`. */
    readonly cursor: string;
    /** For a player only of his own turns. */
    readonly session_id: string | null;
    readonly turn_id: string | null;
    /** In order. Null if what changed reaches into this part from outside: then read it anew. */
    readonly changes: readonly Change[] | null;
    /** Only for operators, game servers and, on a server without tokens, everybody. */
    readonly commit_id?: string;
    readonly why?: string | null;
}

/** What changes in the world, for one consumer. Leaving a `for await` over it closes its connection. */
export interface CommitFeed extends AsyncIterableIterator<ToldCommit> {
    /** Position after the last commit that was taken. */
    readonly cursor: string;
    /** What the user sees there, if the feed begins now. */
    readonly world?: Json;
}

/** Events of a session, for one consumer. Leaving a `for await` over it closes the stream. */
export interface Stream extends AsyncIterableIterator<StreamEvent> {
    /** Position in each turn, for `subscribe({ after })`; -1 for a turn that was begun and has no event yet. */
    readonly cursor: Cursor;
    /** Turns whose terminal event was taken and whose commit_final was not, for `subscribe({ terminalSeen })`. */
    readonly terminalSeen: readonly string[];
    /**
     * Every event of the session up to the commit_final of this turn; the stream itself stays open. Ends at once if
     * commit_final was taken already. Rejects with `unknown_turn` for a turn that this client did not begin and of
     * which it has no event.
     */
    untilCommit(turnId: string): AsyncGenerator<StreamEvent, void, undefined>;
}
