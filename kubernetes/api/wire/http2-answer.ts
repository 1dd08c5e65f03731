/** What comes back on one stream: an answer as a whole, or line by line, each within its bound. */
import { type ClientHttp2Stream, constants, type IncomingHttpHeaders } from 'node:http2';
import { apiFail, type ApiFailure, type ApiResult, failureOfStatus } from '../api-failure.ts';
import { codeOf } from './http2-session.ts';

const REFUSAL_BYTES_MAX = 64 * 1_024;
const NEWLINE = 10;
const { HTTP2_HEADER_STATUS: STATUS, NGHTTP2_CANCEL, NGHTTP2_REFUSED_STREAM } = constants;

/** The stream's headers, or why there are none. */
function answerOf(stream: ClientHttp2Stream, isWrite: boolean): Promise<ApiResult<IncomingHttpHeaders>> {
  return new Promise((resolve) => {
    stream.once('response', (headers) => resolve({ ok: true, value: headers }));
    stream.once('error', (error) => resolve(lost(stream, isWrite, codeOf(error))));
    stream.once('close', () => resolve(lost(stream, isWrite, 'the connection was lost')));
  });
}

function lost(
  stream: ClientHttp2Stream,
  isWrite: boolean,
  why: string,
): { readonly ok: false; readonly failure: ApiFailure } {
  // RFC 9113, 8.7: a stream that was refused so was not begun.
  const isBegun = isWrite && stream.rstCode !== NGHTTP2_REFUSED_STREAM;
  return apiFail('unreachable', why, isBegun ? 'unknown' : 'none');
}

/** The parsed body of an answer with a status 2xx; else what the server says. Settles when the stream has ended. */
export async function readAnswer(
  stream: ClientHttp2Stream,
  bytesMax: number,
  isWrite: boolean,
): Promise<ApiResult<unknown>> {
  const answered = await answerOf(stream, isWrite);
  if (!answered.ok) return answered;
  const headers = answered.value;
  const status = Number(headers[STATUS]);
  const isOk = status >= 200 && status < 300;
  const body = await readBody(stream, isOk ? bytesMax : REFUSAL_BYTES_MAX, isWrite);
  if (!isOk) return { ok: false, failure: refusalOf(headers, status, body.ok ? body.value : '', isWrite) };
  if (!body.ok) return body;
  const value = parsed(body.value);
  return value === undefined
    ? apiFail('malformed', 'the answer is not JSON', isWrite ? 'unknown' : 'none')
    : { ok: true, value };
}

async function readBody(
  stream: ClientHttp2Stream,
  bytesMax: number,
  isWrite: boolean,
): Promise<ApiResult<string>> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of stream) {
      const part = chunk as Buffer;
      bytes += part.length;
      if (bytes > bytesMax) {
        stream.close(NGHTTP2_CANCEL);
        return apiFail(
          'too-large',
          `the answer has more than ${bytesMax} bytes`,
          isWrite ? 'unknown' : 'none',
        );
      }
      chunks.push(part);
    }
  } catch (error) {
    return lost(stream, isWrite, codeOf(error));
  }
  if (isCutShort(stream)) return lost(stream, isWrite, 'the answer was cut short');
  return { ok: true, value: Buffer.concat(chunks).toString('utf8') };
}

function refusalOf(headers: IncomingHttpHeaders, status: number, body: string, isWrite: boolean): ApiFailure {
  return failureOfStatus({ status, body: parsed(body), retryAfter: headers['retry-after'], isWrite });
}

/** Who reads a stream line by line. */
export interface LineTaker {
  readonly lineBytesMax: number;
  readonly opened: () => void;
  /** Answers whether there is to be more. */
  readonly take: (line: unknown) => boolean;
}

/** Settles at the end of the stream. */
export async function readLines(
  stream: ClientHttp2Stream,
  { lineBytesMax, opened, take }: LineTaker,
): Promise<ApiFailure | undefined> {
  const answered = await answerOf(stream, false);
  if (!answered.ok) return answered.failure;
  const status = Number(answered.value[STATUS]);
  if (status !== 200) {
    const body = await readBody(stream, REFUSAL_BYTES_MAX, false);
    return refusalOf(answered.value, status, body.ok ? body.value : '', false);
  }
  opened();
  let rest: Buffer = Buffer.alloc(0);
  try {
    for await (const chunk of stream) {
      rest = rest.length === 0 ? (chunk as Buffer) : Buffer.concat([rest, chunk as Buffer]);
      let from = 0;
      for (let to = rest.indexOf(NEWLINE); to >= 0; to = rest.indexOf(NEWLINE, from)) {
        if (to - from > lineBytesMax) return tooLong(lineBytesMax);
        const line = parsed(rest.toString('utf8', from, to));
        from = to + 1;
        if (line === undefined) return MALFORMED_LINE;
        if (!take(line)) return undefined;
      }
      rest = rest.subarray(from);
      if (rest.length > lineBytesMax) return tooLong(lineBytesMax);
    }
  } catch (error) {
    return { code: 'unreachable', message: codeOf(error), effect: 'none' };
  }
  if (isCutShort(stream)) return { code: 'unreachable', message: 'the stream was cut short', effect: 'none' };
  return undefined;
}

function tooLong(bytesMax: number): ApiFailure {
  return { code: 'too-large', message: `a line has more than ${bytesMax} bytes`, effect: 'none' };
}

/** With the connection a stream may end like one that is whole. */
function isCutShort(stream: ClientHttp2Stream): boolean {
  return stream.rstCode !== 0 || stream.aborted || !stream.readableEnded;
}

const MALFORMED_LINE: ApiFailure = { code: 'malformed', message: 'a line is not JSON', effect: 'none' };

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
