"""A headless Chromium through chromedriver, by WebDriver alone: https://www.w3.org/TR/webdriver2/."""
import json
import shutil
import subprocess
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c", "Left": "\ue012", "Up": "\ue013", "Right": "\ue014", "Down": "\ue015",
        "Home": "\ue011", "End": "\ue010"}


def missing():
    """The programs that are not here."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    return [name for name, path in (("chromium", chromium), ("chromedriver", shutil.which("chromedriver"))) if not path]


class Browser:
    def __init__(self, downloads):
        self.process = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            self.begin(downloads)
        except BaseException:
            self.end()
            raise

    def begin(self, downloads):
        port = None
        for line in self.process.stdout:
            if "on port " in line and "successfully" in line:
                port = int(line.rsplit("port", 1)[1].strip(" .\n"))
                break
        if port is None:
            raise RuntimeError("chromedriver told no port")
        self.base = f"http://127.0.0.1:{port}"
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1400,1000"]}
        always = {"goog:loggingPrefs": {"browser": "ALL"}, "goog:chromeOptions": options}
        self.path = "/session/" + self.call("POST", "/session", {"capabilities": {"alwaysMatch": always}})["sessionId"]
        self.devtools("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(downloads))

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with self.opener.open(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def post(self, path, **body):
        return self.call("POST", self.path + path, body)

    def devtools(self, command, **parameters):
        return self.post("/goog/cdp/execute", cmd=command, params=parameters)

    def close(self):
        try:
            self.call("DELETE", self.path)
        finally:
            self.end()

    def end(self):
        self.process.terminate()
        self.process.wait()

    def open(self, url, width=1400, height=1000, dark=False):
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.post("/url", url=url)

    def js(self, script, *args):
        return self.post("/execute/sync", script=script, args=list(args))

    def complaints(self):
        return [entry["message"] for entry in self.post("/se/log", type="browser") if entry["level"] in ("SEVERE", "WARNING")]

    def find(self, selector):
        return self.post("/element", using="css selector", value=selector)

    def click(self, selector):
        self.post("/element/" + self.find(selector)[ELEMENT] + "/click")

    def hover(self, selector, x=0, y=0):
        """Moves the pointer, from a corner of the window, to the middle of the element, off by x and y."""
        self.post("/execute/async", args=[selector], script="""document.querySelector(arguments[0]).scrollIntoView({ block: 'center' });
requestAnimationFrame(() => requestAnimationFrame(arguments[1]));""")
        moves = [{"type": "pointerMove", "duration": 0, "origin": origin, "x": dx, "y": dy}
                 for origin, dx, dy in (("viewport", 1, 1), (self.find(selector), x, y))]
        self.post("/actions", actions=[{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": moves}])

    def keys(self, *names):
        actions = []
        for name in names:
            value = KEYS.get(name, name)
            actions += [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        self.post("/actions", actions=[{"type": "key", "id": "keys", "actions": actions}])
