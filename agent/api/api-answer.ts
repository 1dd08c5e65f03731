/** What the API answers: a status, and JSON or text. */

export type ApiAnswer =
  /** `allow`: the methods that the path has, for a refusal of another one. */
  | { readonly status: number; readonly body: object; readonly allow?: string }
  /** Written out already; `contentType` says as what. Bytes may be the answer of many, and are never changed. */
  | { readonly status: number; readonly text: string | Buffer; readonly contentType: string };

/** For programs the code, which stays; for people the message. */
export function refusal(
  status: number,
  code: string,
  message: string,
): {
  readonly status: number;
  readonly body: { readonly error: { readonly code: string; readonly message: string } };
} {
  return { status, body: { error: { code, message } } };
}

export const JSON_CONTENT_TYPE = 'application/json; charset=utf-8';

export function jsonText(body: object): string {
  return `${JSON.stringify(body)}\n`;
}
