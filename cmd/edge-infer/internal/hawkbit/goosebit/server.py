"""Runs goosebit on loopback with a new database. usage: server.py PORT; its settings are variables, as it reads them itself."""
import asyncio
import sys

import uvicorn
from goosebit import app
from goosebit.db.config import TORTOISE_CONF
from tortoise import Tortoise


async def create_tables():
    await Tortoise.init(config=TORTOISE_CONF)
    await Tortoise.generate_schemas()
    await Tortoise.close_connections()


asyncio.run(create_tables())
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
