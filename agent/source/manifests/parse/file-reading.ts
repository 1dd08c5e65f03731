/** What one content of a manifest file says, whoever has read it. */
import type { Subject } from '../../../../kubernetes/objects/read-object.ts';
import type { ApiObject } from '../../../../kubernetes/objects/objects.ts';
import type { Rejection } from '../../objects-source.ts';

/** An object and the document it stands in. */
export interface ReadObject {
  readonly object: ApiObject;
  /** `web.yaml#2` */
  readonly place: string;
  /** Equal when two objects say the same; of a secret too, so it is never shown. */
  readonly digest: string;
}

/** What one content of a file says. */
export interface FileReading {
  /** Why the file as a whole says nothing; the rest is empty then. */
  readonly unreadable: string | undefined;
  readonly objects: readonly ReadObject[];
  /** Documents that should have been objects of ours. */
  readonly refused: readonly { readonly subject: Subject | undefined }[];
  /** One for each refused document and each that is not for us; beyond a bound only how many more. */
  readonly rejected: readonly Rejection[];
  /** Ends where a file ends: with a line end, or the closing brace of JSON. */
  readonly finished: boolean;
}

/** Says nothing, for this reason. */
export function unreadable(message: string): FileReading {
  return { unreadable: message, objects: [], refused: [], rejected: [], finished: true };
}
