/** What tests want of a Result they expect to be ok. */
import assert from 'node:assert/strict';
import type { Result } from '../mount/failure.ts';

/** The value; dies of a failure. */
export function value<T>(result: Result<T>): T {
  assert.ok(result.ok, result.ok ? '' : `${result.failure.code}: ${result.failure.message}`);
  return result.value;
}
