/** What a verb answered, as tests want it. */
import assert from 'node:assert/strict';
import type { Result } from '../../../mount/failure.ts';

/** The value; dies of a failure. */
export function accept<T>(result: Result<T>): T {
  assert.ok(result.ok, result.ok ? '' : JSON.stringify(result.failure));
  return result.value;
}

/** What kind of failure it is; dies when it is none. */
export function refuse(result: Result<unknown>): { code: string; effect: string } {
  assert.ok(!result.ok, 'it succeeded');
  return { code: result.failure.code, effect: result.failure.effect };
}
