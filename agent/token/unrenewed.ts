/** Tokens that are not renewed, as a source tells of what is wrong: a pod that has one knows nothing of it yet. */
import type { ObjectsSource, Rejection } from '../source/objects-source.ts';

/** Tokens of one service account that are good still, and for which no newer ones can be had. */
export interface Unrenewed {
  /** `shop/cart`. */
  readonly serviceAccount: string;
  /** When the first of them ends, by the server's clock; RFC 3339. */
  readonly endsAt: string;
  /** Why there are no newer ones. */
  readonly message: string;
}

/** Adds them to what the source rejects; whoever reads it reads it again when tokens have changed. */
export function tellingUnrenewed(
  source: ObjectsSource,
  unrenewed: () => readonly Unrenewed[],
): ObjectsSource {
  return {
    name: source.name,
    start: (node) => source.start(node),
    stop: () => source.stop(),
    onChange: (listener) => source.onChange(listener),
    current() {
      const reading = source.current();
      const [part, ...others] = reading.parts;
      const told = unrenewed();
      if (part === undefined || told.length === 0) return reading;
      const rejected = [...part.rejected, ...told.map((one) => rejectionOf(one, part.name))];
      return { ...reading, parts: [{ ...part, rejected }, ...others] };
    },
  };
}

function rejectionOf({ serviceAccount, endsAt, message }: Unrenewed, origin: string): Rejection {
  return {
    origin,
    subject: `ServiceAccount ${serviceAccount}`,
    message: `its tokens are not renewed, and the first of them ends at ${endsAt}: ${message}`,
  };
}
