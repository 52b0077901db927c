"""The application: addresses, and what is answered there. A page is drawn from plain values, which are its JSON twin."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from shoal.errors import InputError, ShoalError
from shoal.studio import drawing
from shoal.studio.pages import pages
from shoal.studio.security import Guard, Refused
from shoal.studio.studio import Form, Studio
from shoal.studio.texts import Words, chosen, languages
from shoal.studio.uploads import receive

FIELDS = 20_000
"""Fields of a form."""
STATIC = {"studio.css": "text/css", "studio.js": "text/javascript", "tokens.css": "text/css"}
LANGUAGE = "shoal-language"


def make_app(studio: Studio) -> Guard:
    """The application for one project, behind its guard."""
    shown = _Shown(studio)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        studio.warm()
        yield
        await run_in_threadpool(studio.close)

    routes = [
        Route("/", shown.start),
        Route("/health", shown.health),
        Route("/login", shown.login, methods=["GET", "POST"]),
        Route("/language", shown.language, methods=["POST"]),
        Route("/static/{name}", shown.static),
        Route("/jobs.json", shown.jobs),
        Route("/jobs/stop", shown.stop, methods=["POST"]),
        Route("/files/{kind}/{name}/{file}", shown.file),
        Route("/{page}.json", shown.twin),
        Route("/{page}", shown.page),
        Route("/{page}/{action}", shown.act, methods=["POST"]),
    ]
    app = Starlette(
        routes=routes, lifespan=lifespan, exception_handlers={ShoalError: _told, Refused: _refused, Exception: _bug}
    )
    app.state.studio = studio
    return Guard(app, studio.doors)


async def _told(_: Request, problem: Exception) -> Response:
    return PlainTextResponse(f"{problem}\n", status_code=422)


async def _refused(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, Refused)
    return PlainTextResponse(f"{problem.why}\n", status_code=problem.status, headers={"connection": "close"})


async def _bug(_: Request, problem: Exception) -> Response:
    return PlainTextResponse(f"This is a bug in Shoal ({type(problem).__name__}); please report it.\n", status_code=500)


class _Shown:
    """What is answered at each address."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self.templates = Environment(
            loader=PackageLoader("shoal.studio"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.templates.globals.update(drawing.GLOBALS)
        self.templates.filters.update(drawing.FILTERS)

    async def start(self, request: Request) -> Response:
        """The start address: its token becomes a cookie. A page of ours goes on from here, so that the cookie is sent with it."""
        first = next(iter(pages()))
        if not self.studio.doors.starts(request.scope):
            return RedirectResponse(f"/{first}", status_code=303)
        head = '<meta charset="utf-8"><link rel="icon" href="data:,"><title>Shoal studio</title>'
        onward = f'<meta http-equiv="refresh" content="0;url=/{first}">'
        text = f'<!doctype html>{head}{onward}<p><a href="/{first}">Shoal studio</a></p>'
        return HTMLResponse(text, headers={"set-cookie": self.studio.doors.set_cookie})

    async def health(self, _: Request) -> Response:
        """Whether it is there; for whoever watches over a container."""
        return JSONResponse({"ok": True})

    async def login(self, request: Request) -> Response:
        """The password, where the studio is served beyond its machine."""
        doors, wrong = self.studio.doors, False
        if doors.local:
            return PlainTextResponse("Not found.\n", status_code=404)
        if request.method == "POST":
            form = await self._form(request)
            if doors.is_password(form("password", "")):
                return RedirectResponse("/", status_code=303, headers={"set-cookie": doors.set_cookie})
            wrong = True
        context = {**self._context(request, "login"), "wrong": wrong}
        return HTMLResponse(
            self.templates.get_template("login.html").render(context), status_code=403 if wrong else 200
        )

    async def language(self, request: Request) -> Response:
        """Another language, kept in a cookie."""
        form = await self._form(request)
        code, page = form("language", "en"), form("page", "data")
        answer = RedirectResponse(f"/{page if page in pages() else 'data'}", status_code=303)
        if code in languages():
            answer.set_cookie(LANGUAGE, code, httponly=True, samesite="strict")
        return answer

    async def static(self, request: Request) -> Response:
        """Style and script."""
        name = request.path_params["name"]
        if name not in STATIC:
            return PlainTextResponse("Not found.\n", status_code=404)
        return Response(drawing.static(name), media_type=STATIC[name], headers={"cache-control": "no-cache"})

    async def jobs(self, request: Request) -> Response:
        """How far everything is that somebody waits for."""
        words = self._words(request)
        told = [one.to_dict() for one in self.studio.jobs.all]
        told += [{"id": name, "kind": "answer", **one.to_dict()} for name, one in self.studio.desk.busy]
        return JSONResponse({"jobs": [{**one, "says": words.doing(one)} for one in told]})

    async def stop(self, request: Request) -> Response:
        """Stop a job, or what is being answered."""
        form = await self._form(request)
        job = self.studio.jobs.find(form("job", ""))
        await run_in_threadpool(self.studio.jobs.stop, job) if job else await run_in_threadpool(self.studio.desk.stop)
        back = form("page", "run")
        return RedirectResponse(f"/{back if back in pages() else 'run'}", status_code=303)

    async def file(self, request: Request) -> Response:
        """A file of a candidate or a release: one of those that are listed there, whatever the address says."""
        kind, name, wanted = (request.path_params[key] for key in ("kind", "name", "file"))
        project = self.studio.project
        if kind in ("taxonomies", "store"):
            folder = project.taxonomies if kind == "taxonomies" else project.folder / "store-releases"
        else:
            folder = project.release(name) if kind == "releases" else project.candidate(name).folder
        listed = folder.iterdir() if folder.is_dir() else ()
        found = next((path for path in listed if path.name == wanted and path.is_file()), None)
        if kind not in ("releases", "candidates", "taxonomies", "store") or found is None or wanted.startswith("."):
            return PlainTextResponse("Not found.\n", status_code=404)
        if found.suffix == ".html" and "download" not in request.query_params:
            return FileResponse(
                found, media_type="text/html", headers={"content-security-policy": drawing.report_policy()}
            )
        return FileResponse(found, filename=wanted, media_type="application/octet-stream")

    async def twin(self, request: Request) -> Response:
        """The plain values of a page."""
        name = request.path_params["page"]
        if name not in pages():
            return JSONResponse({"error": "There is no such page."}, status_code=404)
        try:
            return JSONResponse(await self._view(request, name))
        except ShoalError as problem:
            return JSONResponse({"error": str(problem)}, status_code=422)

    async def page(self, request: Request) -> Response:
        """A page."""
        name = request.path_params["page"]
        if name not in pages():
            return PlainTextResponse("There is no such page.\n", status_code=404)
        return await self._drawn(request, name)

    async def act(self, request: Request) -> Response:
        """Do what a button says, then show what came of it."""
        name, action = request.path_params["page"], request.path_params["action"]
        actions = pages()[name].ACTIONS if name in pages() else {}
        if action not in actions:
            return PlainTextResponse("There is no such action.\n", status_code=404)
        program = "application/json" in request.headers.get("accept", "")
        try:
            form = await self._form(request)
            to = await run_in_threadpool(actions[action], self.studio, form) or f"/{name}"
        except ShoalError as problem:
            if program:
                return JSONResponse({"error": str(problem)}, status_code=422)
            return await self._drawn(request, name, str(problem))
        return JSONResponse({"to": to}) if program else RedirectResponse(to, status_code=303)

    async def _form(self, request: Request) -> Form:
        kind = request.headers.get("content-type", "").partition(";")[0].strip()
        if kind == "multipart/form-data":
            came = await receive(request, self.studio.project.data)
            return Form({name: [value] for name, value in came.fields.items()}, came.path)
        body = await request.body()
        try:
            if kind == "application/json":
                told = json.loads(body)
                if not isinstance(told, dict):
                    raise ValueError
                return Form({str(k): [str(x) for x in v] if isinstance(v, list) else [str(v)] for k, v in told.items()})
            found: dict[str, list[str]] = {}
            for key, value in parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=FIELDS):
                found.setdefault(key, []).append(value)
        except (ValueError, RecursionError):
            raise InputError("What was sent cannot be read; open the page again and repeat it.") from None
        return Form(found)

    async def _view(self, request: Request, name: str) -> dict[str, Any]:
        return await run_in_threadpool(pages()[name].view, self.studio, dict(request.query_params))

    async def _drawn(self, request: Request, name: str, problem: str = "") -> Response:
        status = 422 if problem else 200
        context = self._context(request, name)
        try:
            page = await self._view(request, name)
            template = f"{name}.html"
        except ShoalError as trouble:
            page, template, problem, status = {}, "problem.html", problem or str(trouble), 422
        context |= {"page": page, "problem": problem}
        text = await run_in_threadpool(self.templates.get_template(template).render, context)
        return HTMLResponse(text, status_code=status)

    def _context(self, request: Request, name: str) -> dict[str, Any]:
        words = self._words(request)
        project = self.studio.project
        return {
            "t": words,
            "name": name,
            "steps": drawing.steps(project, name, list(pages())),
            "begun": project.begun,
            "folder": project.folder.name,
            "languages": languages(),
            "listening": not self.studio.doors.local,
        }

    def _words(self, request: Request) -> Words:
        return Words(chosen(request.cookies.get(LANGUAGE), request.headers.get("accept-language", "")))


def serve(studio: Studio, sock: Any, ready: Any = None) -> None:
    """Serve until somebody stops it; `sock` is bound already, so that its port is known."""
    from shoal.studio.server import run

    run(make_app(studio), sock, ready)


def folder_of(path: Path) -> Path:
    """Where the project of a file lies unless somebody says otherwise."""
    return path.parent / f"{path.name.partition('.')[0]}-studio"


__all__ = ["Refused", "make_app", "serve"]
