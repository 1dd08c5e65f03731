/** `Host.synchronise`, done synchronously. Path brokers only: it may hang for ever. */
import { closeSync, constants, fstatSync, fsyncSync, openSync } from 'node:fs';
import { failErrno } from '../../errno.ts';
import { done, fail, type Result } from '../../failure.ts';
import type { AbsolutePath } from '../../host.ts';
import { openPath, withChild } from '../path/path-walk.ts';

export function synchronise(path: AbsolutePath): Result<void> {
  return withChild(path, (child) => {
    try {
      const place = openPath(child);
      try {
        const facts = fstatSync(place.descriptor);
        if (facts.isSymbolicLink())
          return fail({ code: 'path-unsafe', message: `${child.name} is a link`, effect: 'none' });
        if (!facts.isFile() && !facts.isDirectory())
          return fail({ code: 'path-wrong-kind', message: `${child.name} is neither`, effect: 'none' });
        const descriptor = openSync(place.path, constants.O_RDONLY | constants.O_NONBLOCK);
        try {
          fsyncSync(descriptor);
          return done;
        } finally {
          closeSync(descriptor);
        }
      } finally {
        closeSync(place.descriptor);
      }
    } catch (error) {
      return failErrno(error, `fsync ${path}`, 'none');
    }
  });
}
