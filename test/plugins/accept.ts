import assert from 'node:assert/strict';
import type { Result } from '../../mount/failure.ts';

/**
 * The result is a success; otherwise the test fails with its failure.
 * Because: `assert.ok` without a message searches the source for one, and under tsx that can take minutes.
 */
export function accept<T>(result: Result<T>): asserts result is { readonly ok: true; readonly value: T } {
  assert.ok(result.ok, result.ok ? '' : `${result.failure.code}: ${result.failure.message}`);
}
