/** The bytes of one manifest file as objects, refusals and notices. */
import { parseManifest, type ManifestDocument } from './manifest.ts';
import type { ManifestLimits } from './manifest-limits.ts';
import { readObject, type ShapeReading, type Subject } from './object-shape.ts';
import type { WishObject } from './objects.ts';
import type { Rejection } from './wish.ts';

/** An object and the document it stands in. */
export interface ReadObject {
  readonly object: WishObject;
  /** `web.yaml#2` */
  readonly place: string;
}

/** What one content of a file says. */
export interface FileReading {
  /** Why the file as a whole says nothing; the rest is empty then. */
  readonly unreadable: string | undefined;
  readonly objects: readonly ReadObject[];
  /** Documents that should have been objects of ours. */
  readonly refused: readonly { readonly subject: Subject | undefined }[];
  /** One for each refused document, and one for each that is not for us. */
  readonly rejected: readonly Rejection[];
  /** Ends where a file ends: with a line end, or the closing brace of JSON. */
  readonly finished: boolean;
}

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
  const readings = documents.value.map((document) => {
    return { document, reading: readObject(document.value, origin, document.field, document.problems) };
  });
  const place = ({ number }: ManifestDocument): string => `${origin}#${number}`;
  return {
    unreadable: undefined,
    objects: readings.flatMap(({ document, reading }) => {
      return reading.kind === 'object' ? [{ object: reading.object, place: place(document) }] : [];
    }),
    refused: readings.flatMap(({ reading }) =>
      reading.kind === 'refused' ? [{ subject: reading.subject }] : [],
    ),
    rejected: readings.flatMap(({ document, reading }) =>
      rejectionOf(place(document), document.line, reading),
    ),
    finished: /[\n}]\s*$/.test(text.slice(-64)),
  };
}

function rejectionOf(origin: string, line: number, reading: ShapeReading): readonly Rejection[] {
  if (reading.kind === 'object') return [];
  if (reading.kind === 'ignored') return [{ origin, message: reading.message }];
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

/** Without a byte order mark; undefined when it is not UTF-8. */
function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function unreadable(message: string): FileReading {
  return { unreadable: message, objects: [], refused: [], rejected: [], finished: true };
}
