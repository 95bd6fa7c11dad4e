/** Types of footlights.js. Fields of events and params are named as on the wire; everything else as in JavaScript. */

/** In a cursor: everything of this turn was taken, its commit_final too. */
export declare const ALL_SEEN: 1_000_000_001;

/** How far each turn was taken: the last seq by turn id, and -1 if nothing of it was. */
export type Cursor = Readonly<Record<string, number>>;

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** What a server refuses with. */
export type WireCode =
    | "invalid_command"
    | "unknown_session"
    | "unknown_turn"
    | "session_closed"
    | "busy"
    | "too_large"
    | "rate_limited"
    | "unauthorized"
    | "unsupported_version"
    | "internal";

/** Whatever goes wrong has a `code`. */
export declare class FootlightsError extends Error {
    readonly code: WireCode | "connection_lost" | "law_broken";
    constructor(code: string, message: string);
}

/** There is no connection, and nobody knows whether a command that was under way was done. */
export declare class ConnectionLost extends FootlightsError {
    readonly code: "connection_lost";
    constructor(message: string);
}

/** The server sent what no lawful stream holds. */
export declare class LawBroken extends FootlightsError {
    readonly code: "law_broken";
    /** The name of the law. */
    readonly law: string;
    readonly turnId: string;
    readonly seq: number;
    constructor(law: string, event: { readonly turn_id: string; readonly seq: number });
}

// -- events

/** Sequence numbers that will not come, both ends included. */
export interface SeqRange {
    readonly start_seq: number;
    readonly end_seq: number;
}

/** What every payload may carry. */
export interface Payload {
    /** An extension's own data. */
    readonly ext?: { readonly namespace: string; readonly data: Json };
    /** What this client will not get of the turn before this event. Text of joined deltas is not missing. */
    readonly dropped_seq_ranges?: readonly SeqRange[];
}

export interface TurnAccepted extends Payload {
    readonly turns_ahead: number;
}

export interface ModelSelected extends Payload {
    readonly model_id: string;
    readonly reason: string;
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
    readonly error?: { readonly code: string; readonly message: string };
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
}

export interface TurnFinal extends Payload {
    /** All that was said, unless `text_forgotten` is set. */
    readonly text: string;
    /** The turn ended so long ago, or before a restart, that its words are gone: `text` is empty. Keep what you have. */
    readonly text_forgotten?: boolean;
    readonly output_tokens?: number;
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

// -- what a host holds

export interface ConnectOptions {
    /** Goes as the subprotocol `bearer.TOKEN`, because a browser sets no headers. */
    token?: string | null;
    /** Ask for several events in one frame. */
    batch?: boolean;
    /** The class to connect with; the global one unless told. */
    WebSocket?: new (url: string, protocols: string[]) => WebSocketLike;
    /** How many events may wait for a slow consumer before its stream is detached, to be resumed later. */
    maxWaiting?: number;
    /** How often in a row connecting again may fail, and how often one that is busy is asked again for a stream. */
    attempts?: number;
    /** How many milliseconds to wait before the attempt, counted from 0. */
    backoff?: (attempt: number) => number;
    /**
     * After so many milliseconds in which nothing came, 30,000 unless told, the server is asked for a sign of life,
     * and left if none comes in as many again. A connection may take as long to open.
     */
    silence?: number;
    /** Whose timers to use; the global ones unless told. */
    timers?: TimersLike;
}

/** What is used of timers. */
export interface TimersLike {
    setTimeout(wake: () => void, milliseconds: number): any;
    clearTimeout(timer: any): void;
}

/** What is used of a WebSocket. */
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
    /** A name of your own, to come back to after a restart. */
    session_id?: string;
    /** Whether text may go to models elsewhere. */
    remote_models?: boolean;
}

export interface TurnParams {
    busy?: "queue" | "interrupt" | "reject" | "concurrent";
    mode?: "chat" | "execution";
    model?: string;
    persona?: string;
    tier?: "dormant" | "whisper" | "dialogue" | "deep";
    temperature?: number;
    /** Answers to what waits for an approval: by its id, whether to do it. */
    approvals?: Record<string, boolean>;
    workload?: string;
}

export interface Commit {
    readonly commit_id: string | null;
    readonly commit_digest: string;
    readonly commit_outcome: CommitOutcome;
}

/** Connect to a server. Rejects if that fails; a browser is not told why. */
export declare function connect(url: string | URL, options?: ConnectOptions): Promise<Client>;

/** Keeps a connection, and brings every event to its stream. */
export interface Client {
    /** Open a session. */
    start(params?: SessionParams): Promise<Session>;
    /** A session that is there already. */
    session(sessionId: string, params?: Pick<SessionParams, "remote_models">): Session;
    /** Let go of everything: streams end, sessions and their turns go on without us. */
    close(): Promise<void>;
}

/** One session. Every call rejects with a `FootlightsError` if the server says no. */
export interface Session {
    readonly sessionId: string;
    /** Follow the session: unfinished turns, then live. With a cursor of before, what came since. */
    subscribe(options?: { after?: Cursor | null; terminalSeen?: readonly string[] }): Promise<Stream>;
    /** Say something; resolves to the turn's id. After `ConnectionLost` the turn may have begun: a stream tells. */
    beginTurn(input: string, params?: TurnParams): Promise<string>;
    /** Stop a turn, or every open one; resolves to the ids of those that it stopped. */
    cancel(turnId?: string | null): Promise<string[]>;
    /** How the turn was committed. Waits until that is known. */
    finalize(turnId: string): Promise<Commit>;
    /** Tell how far the player really got. */
    heard(turnId: string, seq: number): Promise<void>;
    /** Stop what runs, and end the session. Its streams end by themselves, after the last commit. */
    close(): Promise<void>;
}

/** The events of a session, for one consumer. Leaving a `for await` over it leaves the stream. */
export interface Stream extends AsyncIterableIterator<StreamEvent> {
    /** What was taken so far, for `subscribe({ after })`; a turn that was begun and has not come yet is at -1. */
    readonly cursor: Cursor;
    /** The turns whose end was taken and whose commit was not, for `subscribe({ terminalSeen })`. */
    readonly terminalSeen: readonly string[];
    /**
     * Every event of the session up to the commit_final of this turn. The stream goes on after it. Ends at once if
     * that was taken; rejects with `unknown_turn` if the turn was not begun here and nothing of it has come yet.
     */
    untilCommit(turnId: string): AsyncGenerator<StreamEvent, void, undefined>;
}
