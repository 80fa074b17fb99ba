// Requests to the broker. Addresses are relative, so the page works below any path. The browser keeps the token only in
// this tab, and sends it in a header. There is no cookie.

import { query } from "./dom.js";

const storageKey = "delaybroker-token";
let token = sessionStorage.getItem(storageKey) ?? "";
export let access = {};

export class Refused extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

async function call(path, options = {}) {
  const headers = { Accept: "application/json", ...options.headers };
  if (token) headers.Authorization = "Bearer " + token;
  let response;
  try {
    response = await fetch(path, { ...options, headers, credentials: "omit", cache: "no-store" });
  } catch (err) {
    if (err.name === "AbortError") throw err;
    throw new Refused(0, "The broker does not answer. Check that it runs, and try again.");
  }
  let body;
  try {
    body = await response.json();
  } catch {
    throw new Refused(response.status, `The answer (HTTP ${response.status}) is not from the broker. Check the proxy.`);
  }
  if (!response.ok) throw new Refused(response.status, body.error ?? String(response.status));
  return body;
}

export function get(path, params = {}, signal = undefined) {
  return call("api/" + path + query(params), { signal });
}

export function post(path, body) {
  return call("api/" + path, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  });
}

// Requests the rights of a token, and keeps the token if it is valid. An empty string removes the kept token.
export async function useToken(text) {
  const before = token;
  token = text;
  try {
    access = await call("api/access");
  } catch (err) {
    token = before;
    throw err;
  }
  if (text) sessionStorage.setItem(storageKey, text);
  else sessionStorage.removeItem(storageKey);
}

// Uses the token that the browser has kept, or no token if that token is no longer valid.
export async function startSession() {
  try {
    await useToken(token);
  } catch (err) {
    if (err.status === 401) await useToken("");
    else throw err;
  }
}
