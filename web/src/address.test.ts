import { beforeAll, expect, test, vi } from "vitest";

let address: typeof import("./address");

beforeAll(async () => {
  vi.stubGlobal("location", { pathname: "/token/overview", search: "" });
  vi.stubGlobal("addEventListener", () => undefined);
  address = await import("./address");
});

test.each([
  "/token/overview",
  "/token/tensor?op=27&slot=in1&at=37,123,2,0&ax=r,c,1,1&lang=zh&theme=dark",
  "/token/overview?op=3&step=42&rank=0&side=golden&q=type:Conv+status:fail&sort=-added",
  "/token/events?op=3&step=1&event=12",
  "/token/graph?open=layer2,layer2.1",
  "/token/graph?open=",
  "/token/overview?name=/layer2/layer2.1/conv1/Conv&cols=error,cause",
  "/token/overview?q=rel_l2>1e-3+name~%22a+%26+b%22",
])("%s is read and written as it is", (url) => {
  const [path, search = ""] = url.split("?");
  expect(address.formatAddress(address.parseAddress(path, search))).toBe(url);
});

test.each([
  ["/token/nowhere?op=-1&slot=x&at=a,b&theme=pink&lang=de&other=1", "/token/overview"],
  ["/token/overview?sort=order&side=left&q=", "/token/overview"],
  ["/token/graph?open=a%2Cb,c%252Cd", "/token/graph?open=a,b,c%252Cd"],
])("%s becomes %s", (url, expected) => {
  const [path, search = ""] = url.split("?");
  expect(address.formatAddress(address.parseAddress(path, search))).toBe(expected);
});

test("step and rank join the filter", () => {
  const read = (search: string) => address.parseAddress("/token/overview", search);
  expect(address.scopedFilter(read("q=type:Conv&step=3&rank=0"))).toBe("type:Conv step:3 rank:0");
  expect(address.scopedFilter(read(""))).toBe("");
});

test.each([
  ["#/tensor?op=27&slot=in1", "/token/tensor?op=27&slot=in1"],
  ["#graph?open=layer2,layer2.1", "/token/graph?open=layer2,layer2.1"],
  ["#/overview?q=rel_l2%3E1e-3+a?b", "/token/overview?q=rel_l2>1e-3+a%3Fb"],
  ["", "/token/overview"],
  ["#?op=3", "/token/overview?op=3"],
])("%s is the address of a report", (fragment, url) => {
  expect(address.formatAddress(address.parseFragment(fragment))).toBe(url);
});
