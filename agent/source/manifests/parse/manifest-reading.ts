/** The bytes of one manifest file as objects, refusals and notices. */
import { contentDigest } from './content-digest.ts';
import { parseManifest, type ManifestDocument } from './manifest.ts';
import type { ManifestLimits } from './manifest-limits.ts';
import { type FileReading, unreadable } from './file-reading.ts';
import { readObject, type ShapeReading } from '../../../../kubernetes/objects/read-object.ts';
import type { Rejection } from '../../objects-source.ts';

/** Rejections of one file that are told one by one. */
const REJECTED_MAX = 64;

/** Pure and total: any bytes in. Nothing in the answer but the objects' own secrets is secret. */
export function readManifestFile(origin: string, bytes: Uint8Array, limits: ManifestLimits): FileReading {
  if (bytes.length > limits.fileBytesMax) return unreadable(`it is longer than ${limits.fileBytesMax} bytes`);
  const text = decode(bytes);
  if (text === undefined) return unreadable('it is not UTF-8 text');
  const documents = parseManifest(text, limits);
  if (!documents.ok) return unreadable(documents.failure.message);
  if (documents.value.length === 0) {
    return unreadable('it is empty; delete it to say that nothing of it is wanted any more');
  }
  if (documents.value.length > limits.fileObjectsMax)
    return unreadable(`it has more than ${limits.fileObjectsMax} objects`);
  const readings = documents.value.map((document) => {
    const problems = isTooRich(document.value, limits.valuesMax)
      ? [...document.problems, { field: '', message: `it has more than ${limits.valuesMax} values` }]
      : document.problems;
    return { document, reading: readObject(document.value, origin, document.field, problems) };
  });
  const place = ({ number }: ManifestDocument): string => `${origin}#${number}`;
  return {
    unreadable: undefined,
    objects: readings.flatMap(({ document, reading }) => {
      if (reading.kind !== 'object') return [];
      const { object } = reading;
      return [{ object, place: place(document), digest: contentDigest(object) }];
    }),
    refused: readings.flatMap(({ reading }) =>
      reading.kind === 'refused' ? [{ subject: reading.subject }] : [],
    ),
    rejected: cut(
      origin,
      readings.flatMap(({ document, reading }) => rejectionOf(place(document), document.line, reading)),
    ),
    finished: /[\n}]\s*$/.test(text.slice(-64)),
  };
}

/** Those that decide about attachments are all needed. */
function cut(origin: string, rejections: readonly Rejection[]): readonly Rejection[] {
  if (rejections.length <= REJECTED_MAX) return rejections;
  const kept = rejections.filter(({ attachment }, index) => index < REJECTED_MAX || attachment !== undefined);
  const more = rejections.length - kept.length;
  return more === 0 ? kept : [...kept, { origin, message: `and ${more} more objects are not taken` }];
}

/** Assumes a value of bounded depth; stops counting at the bound. */
function isTooRich(value: unknown, valuesMax: number): boolean {
  let left = valuesMax;
  const count = (one: unknown): void => {
    left -= 1;
    if (typeof one !== 'object' || one === null) return;
    for (const key in one) {
      if (left < 0) return;
      count((one as Record<string, unknown>)[key]);
    }
  };
  count(value);
  return left < 0;
}

function rejectionOf(origin: string, line: number, reading: ShapeReading): readonly Rejection[] {
  if (reading.kind === 'object') return [];
  if (reading.kind === 'ignored') {
    const { identity, message } = reading;
    return [{ origin, ...(identity === undefined ? {} : { subject: identity }), message }];
  }
  const [first, ...others] = reading.problems;
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
  return [
    {
      origin,
      ...(reading.subject === undefined ? {} : { subject: reading.subject.identity }),
      ...(reading.subject?.attachment === undefined ? {} : { attachment: reading.subject.attachment }),
      ...(first === undefined || first.field === '' ? {} : { field: first.field }),
      message: `${first?.message ?? 'refused'}${more}; the document begins on line ${line}`,
    },
  ];
}

/** A byte order mark is left out; undefined when it is not UTF-8. */
function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
