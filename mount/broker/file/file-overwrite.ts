/** `Host.overwriteFile`, done synchronously. Path brokers only: it may hang for ever. */
import { closeSync, constants, fdatasyncSync, fstatSync, openSync, writeSync } from 'node:fs';
import { failErrno } from '../../errno.ts';
import { done, type Effect, fail, type Failure, type Result } from '../../failure.ts';
import type { AbsolutePath } from '../../host.ts';
import { mountIdOf, openPath, type ChildPath, withChild } from '../path/path-walk.ts';

export interface Overwriting {
  readonly path: AbsolutePath;
  readonly at: number;
  readonly content: Uint8Array;
  /** The mount that the directory has to be in. */
  readonly within: number | undefined;
}

export function overwriteFile({ path, at, content, within }: Overwriting): Result<void> {
  return withChild(path, (child) => {
    let effect: Effect = 'none';
    try {
      if (within !== undefined && mountIdOf(child.parent) !== within) return fail(elsewhere(path));
      const descriptor = openForWriting(child);
      if (typeof descriptor !== 'number') return descriptor;
      try {
        const { size } = fstatSync(descriptor);
        const endBytes = at + content.length;
        if (endBytes > size) {
          const message = `${path} has ${size} bytes, not ${endBytes}`;
          return fail({ code: 'too-large', message, effect: 'none' });
        }
        effect = 'unknown';
        for (let written = 0; written < content.length; ) {
          written += writeSync(descriptor, content, written, content.length - written, at + written);
        }
        fdatasyncSync(descriptor);
        return done;
      } finally {
        closeSync(descriptor);
      }
    } catch (error) {
      return failErrno(error, `write over ${path}`, effect);
    }
  });
}

function elsewhere(path: AbsolutePath): Failure {
  return { code: 'mount-foreign', message: `another mount is over the directory of ${path}`, effect: 'none' };
}

/** The place first and the file through it, so that no device, fifo or link is ever opened for writing. */
function openForWriting(child: ChildPath): number | ReturnType<typeof fail> {
  const place = openPath(child);
  try {
    const facts = fstatSync(place.descriptor);
    if (facts.isSymbolicLink())
      return fail({ code: 'path-unsafe', message: `${child.name} is a link`, effect: 'none' });
    if (!facts.isFile())
      return fail({ code: 'path-wrong-kind', message: `${child.name} is no file`, effect: 'none' });
    return openSync(place.path, constants.O_WRONLY | constants.O_NONBLOCK);
  } finally {
    closeSync(place.descriptor);
  }
}
