// What every script here needs: its options, a way to print, and a way to wait for the test.
import { createInterface } from "node:readline";

export const options = JSON.parse(process.argv[2]);
export const print = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);

let lines = null;

/** What the test says next. */
export async function told() {
    lines ??= createInterface({ input: process.stdin })[Symbol.asyncIterator]();
    return JSON.parse((await lines.next()).value);
}

/** Let the process end although the test may still speak. */
export function hangUp() {
    process.stdin.destroy();
}

/** The code with which that is refused; null if it is not. */
export async function refusal(promise) {
    return promise.then(
        () => null,
        (error) => error.code,
    );
}
